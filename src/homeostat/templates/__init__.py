"""Template text -> desired graph. Pure: no I/O, no clock, no randomness; may be imported by any layer above `model`.

`parse` text to plain data · `versions` of the language, `dialects` what each calls things · `parameters`,
`constraints` · `functions` the intrinsic ones · `snippets` plain data to trees · `tree` what a tree is and how it is
evaluated · `definitions`, `graph`, `compile` the whole · `patterns` regular expressions, `queries` and `queryfunctions`
YAQL, both bounded · `weights` what values take. In the order the data flows:

    text -> parse_template -> compile_template -> Compiled.definitions[name].properties -> evaluate(tree, scope)

What depends on parameters, files and conditions alone is computed while compiling; what asks other resources stays in
the tree as a `Function` node until they can answer. All that is wrong with a template is a `model.errors.Rejected`.
"""

from homeostat.templates.compile import Compiled, compile_template, validate_shape
from homeostat.templates.parameters import HIDDEN, Parameter, ParameterSchema, check_immutable
from homeostat.templates.parse import parse_document, parse_environment, parse_template
from homeostat.templates.tree import (
    UNKNOWN,
    DynamicList,
    DynamicMap,
    Function,
    Scope,
    Unknown,
    WeighedScope,
    evaluate,
    is_dynamic,
    nodes,
    requires,
    traverse,
)
from homeostat.templates.versions import Version, declared_in, functions_of, versions

__all__ = [
    "HIDDEN",
    "UNKNOWN",
    "Compiled",
    "DynamicList",
    "DynamicMap",
    "Function",
    "Parameter",
    "ParameterSchema",
    "Scope",
    "Unknown",
    "Version",
    "WeighedScope",
    "check_immutable",
    "compile_template",
    "declared_in",
    "evaluate",
    "functions_of",
    "is_dynamic",
    "nodes",
    "parse_document",
    "parse_environment",
    "parse_template",
    "requires",
    "traverse",
    "validate_shape",
    "versions",
]
