"""The values that JSON can hold, as metadata is made of them."""

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
