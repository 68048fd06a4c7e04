"""Path parameters beyond those of Starlette, which are known by name once this module is imported."""

from starlette.convertors import PathConvertor, register_url_convertor


class TextConvertor(PathConvertor):
    """Match the rest of a path, line breaks included, at which Starlette's `path` stops."""

    regex = "(?s:.*)"


register_url_convertor("text", TextConvertor())
