"""Templates: text -> desired graph. Pure: no I/O, no clock, no randomness; any layer above `model` may import it.

    text -> parse_template -> compile_template -> Compiled.definitions[name].properties -> evaluate(tree, scope)

- `parser`, `yaml_parser`: text to plain data, bounded in size and depth; `versions`, `dialects`: HOT and CFN
- `environments`, `environment_merge`, `shared_environments`, `registry`: environments and the resource registry
- `parameters`, `constraints`, `hidden_parameters`: schemas of parameters, their values and checks
- `snippets`, `tree`: plain data to trees, and how a tree is evaluated; `functions`: the intrinsic functions
- `definitions`, `graph`, `compiler`: the whole template; `alike`: definitions of equal text, compiled once
- `patterns`, `yaql_engine`, `yaql_functions`, `weights`: bounds on regular expressions, YAQL and values

The compiler computes every function that depends only on parameters, files and conditions. A function that reads other
resources stays in the tree as a `Function` node until those resources have their values. Every error in a template is a
`model.errors.Rejected`.
"""

from homeostat.templates.compiler import Compiled, compile_template, validate_shape
from homeostat.templates.parameters import HIDDEN, Parameter, ParameterSchema, check_immutable
from homeostat.templates.parser import parse_document, parse_environment, parse_template
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
