"""All rules over one root, as its package states them, and the sentence that stops its build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparkserve.roots import loader, once, rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sparkserve.roots.tree import Root

_SHOWN = 5


def judge(root: Root, given: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, list[str]]:
    """What breaks each rule, by the rule's name; every rule is in it. `texts` are files of ours, by name.

    `given`, from the package:
      machine, glibc  what the root is for
      sites           the folders of Python modules, in the order of lookup
      data            patterns of ELF files for other machines, with the reason why they are there
      loaded          libraries that the loader does not find by itself: library, user, by, because
      libraryPath     LD_LIBRARY_PATH of the engine, as a list
      libraries       libraries that are there once: name, place, user (an ELF file that maps it)
      owners          modules that two wheels bring: module, site, distribution that it has to be from
    """
    machine, sites = given["machine"], given["sites"]
    loaded = [loader.Loaded(**entry) for entry in given["loaded"]]
    found = {
        "machine": rules.machines(root, machine, given["data"]),
        "libraries": loader.libraries(root, machine, loaded, given["libraryPath"]),
        "wheels": once.tags(root, sites, machine, given["glibc"]),
        "distributions": once.distributions(root, sites),
        "modules": once.modules(root, sites),
        "modes": rules.modes(root),
        "references": rules.references(texts),
    }
    for entry in given["libraries"]:
        found[entry["name"]] = once.library(root, machine, **entry)
    for entry in given["owners"]:
        found[entry["module"]] = once.owner(root, **entry)
    return {rule: list(problems) for rule, problems in found.items()}


def refusal(name: str, found: Mapping[str, Sequence[str]]) -> str:
    """The line for a build of `name` in which rules are broken; empty when all hold. See nix/throw.nix."""
    problems = [f"{rule}: {problem}" for rule, each in found.items() for problem in each]
    if not problems:
        return ""
    more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    what = "; ".join(problems[:_SHOWN]) + more
    return (
        f"ROOT.CHECK | every rule about an engine root to hold | {what.replace('|', '/')} | {name} | "
        f"Correct pkgs/{name}, or the pins; ./sparkserve nix log .#{name} has every line."
    )
