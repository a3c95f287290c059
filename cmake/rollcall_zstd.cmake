# rollcall::zstd: zstd's library, found on the machine that links it. This file is also part of the installed package,
# if that was built with zstd.

find_library(ROLLCALL_ZSTD_LIBRARY zstd)
mark_as_advanced(ROLLCALL_ZSTD_LIBRARY)
if(NOT ROLLCALL_ZSTD_LIBRARY)
  message(FATAL_ERROR "rollcall: reading files packed with zstd needs its library (Debian: libzstd-dev)")
endif()
if(NOT TARGET rollcall::zstd)
  add_library(rollcall::zstd UNKNOWN IMPORTED)
  set_target_properties(rollcall::zstd PROPERTIES IMPORTED_LOCATION "${ROLLCALL_ZSTD_LIBRARY}")
endif()
