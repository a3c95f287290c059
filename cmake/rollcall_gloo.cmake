# rollcall::gloo: Gloo's library, found on the machine that links it. This file is also part of the installed package,
# whose own library must not remember where Gloo was when it was built.

find_library(ROLLCALL_GLOO_LIBRARY gloo)
mark_as_advanced(ROLLCALL_GLOO_LIBRARY)
if(NOT ROLLCALL_GLOO_LIBRARY)
  if(CMAKE_FIND_PACKAGE_NAME STREQUAL "rollcall")
    return()  # the caller reports it if it matters
  endif()
  message(FATAL_ERROR "rollcall: Gloo's headers are installed, but its library is not (Debian: libgloo-dev)")
endif()
if(NOT TARGET rollcall::gloo)
  add_library(rollcall::gloo UNKNOWN IMPORTED)
  set_target_properties(rollcall::gloo PROPERTIES IMPORTED_LOCATION "${ROLLCALL_GLOO_LIBRARY}")
endif()
