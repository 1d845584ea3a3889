"""Add the modules and files that PyInstaller does not find in imports."""

from PyInstaller.utils.hooks import collect_data_files, collect_submodules, copy_metadata

hiddenimports = collect_submodules("callboard", on_error="ignore")
datas = [
    *collect_data_files("callboard"),
    *collect_data_files("callboard", subdir="examples", include_py_files=True),
    *copy_metadata("callboard"),
]
