# rollcall::zstd: the library of zstd, looked for on the machine that links it. Also part of the installed package, if
# that was built with it.

find_library(ROLLCALL_ZSTD_LIBRARY zstd)
mark_as_advanced(ROLLCALL_ZSTD_LIBRARY)
if(NOT ROLLCALL_ZSTD_LIBRARY)
  message(FATAL_ERROR "rollcall: reading files packed with zstd needs its library (Debian: libzstd-dev)")
endif()
if(NOT TARGET rollcall::zstd)
  add_library(rollcall::zstd UNKNOWN IMPORTED)
  set_target_properties(rollcall::zstd PROPERTIES IMPORTED_LOCATION "${ROLLCALL_ZSTD_LIBRARY}")
endif()
