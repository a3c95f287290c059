# Installs the headers of the C++ library below INCLUDE_DIR/rollcall, with the paths that they have here: the headers
# that are meant to be included, and those that they include. Inside them, "sim/c10d/op.h" becomes
# "rollcall/sim/c10d/op.h", so that only INCLUDE_DIR itself has to be searched, and no other project's sim/ is in the
# way.

cmake_policy(VERSION 3.25)

set(headers
  sim/dist.h sim/c10d/forwarding_backend.h sim/train/fsdp.h sim/train/sampler.h sim/pipeline/schedule.h
  sim/dtensor/dtensor.h sim/dtensor/parallel_module.h sim/dtensor/ring_attention.h
  sim/engine/simulate.h
  sim/report/report.h
  viz/catch2.h viz/traces/chrome_trace.h viz/html/html_report.h viz/json/json_report.h viz/text/text_report.h
  real/backends/backends.h real/launch/launch.h)

set(quoted "#include \"((sim|viz|real)/[^\"]+)\"")
set(seen "")
while(headers)
  list(POP_FRONT headers header)
  if(header IN_LIST seen)
    continue()
  endif()
  list(APPEND seen "${header}")
  file(READ "${SOURCE_DIR}/${header}" text)
  string(REGEX MATCHALL "${quoted}" includes "${text}")
  list(TRANSFORM includes REPLACE "${quoted}" "\\1")
  list(APPEND headers ${includes})

  string(REGEX REPLACE "${quoted}" "#include \"rollcall/\\1\"" text "${text}")
  set(installed "${CMAKE_INSTALL_PREFIX}/${INCLUDE_DIR}/rollcall/${header}")
  message(STATUS "Installing: $ENV{DESTDIR}${installed}")
  file(WRITE "$ENV{DESTDIR}${installed}" "${text}")
  file(CHMOD "$ENV{DESTDIR}${installed}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${installed}")
endwhile()
