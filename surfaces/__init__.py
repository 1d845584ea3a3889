"""The contract of surfaces; each kind of surface is a package."""

from callboard.surfaces._atomic_replace import (
    delete_stale_spares,
    publish_file,
    replace_file,
    spare_file,
    sync_folder,
    write_lock,
)
from callboard.surfaces._bounded_zip import BoundedZipFile
from callboard.surfaces._effect_guard import (
    COMMIT_SECONDS,
    EffectGuard,
    committing,
    current_guard,
    foresee,
    keep_version,
    post_note,
)
from callboard.surfaces._named_surfaces import (
    SHIPPED,
    NamedSurface,
    make_surfaces,
    named_surfaces,
    shipped_surface,
    surface_needs,
    surface_of,
)
from callboard.surfaces._need import Need, check_needs
from callboard.surfaces._numbers import Number, parse_number
from callboard.surfaces._process import Finished, run_process
from callboard.surfaces._running_call import MOST_PICTURE_BYTES, MOST_PICTURES, PNG, Call, CallKeeper, current_call
from callboard.surfaces._stage import Stage
from callboard.surfaces._surface import (
    UNKNOWN,
    Server,
    SurfaceTool,
    observed,
    reads_are_harmless,
    tool,
)
from callboard.surfaces._tool_function import InDoubtError, ToolError, ToolFunction
from callboard.surfaces._user_files import is_link, lock_file, open_file, read_file

__all__ = [
    "COMMIT_SECONDS",
    "MOST_PICTURES",
    "MOST_PICTURE_BYTES",
    "PNG",
    "SHIPPED",
    "UNKNOWN",
    "BoundedZipFile",
    "Call",
    "CallKeeper",
    "EffectGuard",
    "Finished",
    "InDoubtError",
    "NamedSurface",
    "Need",
    "Number",
    "Server",
    "Stage",
    "SurfaceTool",
    "ToolError",
    "ToolFunction",
    "check_needs",
    "committing",
    "current_call",
    "current_guard",
    "delete_stale_spares",
    "foresee",
    "is_link",
    "keep_version",
    "lock_file",
    "make_surfaces",
    "named_surfaces",
    "observed",
    "open_file",
    "parse_number",
    "post_note",
    "publish_file",
    "read_file",
    "reads_are_harmless",
    "replace_file",
    "run_process",
    "shipped_surface",
    "spare_file",
    "surface_needs",
    "surface_of",
    "sync_folder",
    "tool",
    "write_lock",
]
