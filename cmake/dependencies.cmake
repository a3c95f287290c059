# Finds the libraries that rollcall uses, and prints one line for each missing optional one.

# Linked statically: a fiber switch through the shared library pays for the PLT and for a call that looks up the
# thread's storage, a third of its instructions. 1.74 (in Debian 11) has everything we call; we measure with 1.81.
set(Boost_USE_STATIC_LIBS ON)
set(Boost_NO_WARN_NEW_VERSIONS ON)
find_package(Boost 1.74 CONFIG REQUIRED COMPONENTS fiber context)
if(Boost_VERSION VERSION_LESS 1.81)
  message(STATUS "rollcall: Boost ${Boost_VERSION_STRING} found, 1.81 or newer is preferred")
endif()

if(ROLLCALL_PORTABLE)
  set(ZLIB_USE_STATIC_LIBS ON)
  find_library(ROLLCALL_ZSTD_LIBRARY NAMES libzstd.a)
  add_link_options(-static-libstdc++ -static-libgcc)
endif()

find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)
set(ROLLCALL_FMT $<IF:$<BOOL:${ROLLCALL_PORTABLE}>,fmt::fmt-header-only,fmt::fmt>)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)

# For traces and dumps: gzip, and Perfetto's protobuf, which protozero writes without a protobuf compiler.
find_package(ZLIB REQUIRED)
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_writer.hpp REQUIRED)
mark_as_advanced(PROTOZERO_INCLUDE_DIR)

# For dumps and traces packed with zstd. Without it, rollcall refuses them with a message that names zstd.
find_path(ROLLCALL_ZSTD_INCLUDE_DIR zstd.h)
mark_as_advanced(ROLLCALL_ZSTD_INCLUDE_DIR)
if(ROLLCALL_ZSTD_INCLUDE_DIR)
  include(rollcall_zstd)
  set(ROLLCALL_HAS_ZSTD TRUE)
else()
  message(STATUS "rollcall: zstd not found: files packed with it will not be read")
  set(ROLLCALL_HAS_ZSTD FALSE)
endif()

# Libraries for real runs. A machine without them still builds, tests and simulates everything else, and so does one on
# which an option such as -DROLLCALL_WITH_NCCL=OFF disables the search.
function(rollcall_look_for name header)
  string(TOUPPER "${name}" key)
  option(ROLLCALL_WITH_${key} "Use ${name} where it is found" ON)
  if(NOT ROLLCALL_WITH_${key})
    message(STATUS "rollcall: ${name} is not used: real/ will be built without it")
    unset(ROLLCALL_${key}_INCLUDE_DIR CACHE)
    return()
  endif()
  find_path(ROLLCALL_${key}_INCLUDE_DIR ${header} PATH_SUFFIXES cuda/include PATHS /usr/local/cuda/include)
  mark_as_advanced(ROLLCALL_${key}_INCLUDE_DIR)
  if(ROLLCALL_${key}_INCLUDE_DIR)
    message(STATUS "rollcall: ${name} found in ${ROLLCALL_${key}_INCLUDE_DIR}")
  else()
    message(STATUS "rollcall: ${name} not found: real/ will be built without it")
  endif()
endfunction()

rollcall_look_for(CUDA cuda_runtime_api.h)
rollcall_look_for(NCCL nccl.h)
rollcall_look_for(Gloo gloo/allreduce.h)
set(ROLLCALL_OPENS_GLOO "")
if(ROLLCALL_GLOO_INCLUDE_DIR)
  include(rollcall_gloo)
  include(open_later)
  set(ROLLCALL_GLOO_JUMPS "${PROJECT_BINARY_DIR}/gloo_jumps.cc")
  rollcall_open_later("${ROLLCALL_GLOO_JUMPS}" "${ROLLCALL_GLOO_LIBRARY}")
  cmake_path(GET ROLLCALL_GLOO_LIBRARY PARENT_PATH gloo_folder)
  if(NOT gloo_folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    list(APPEND CMAKE_BUILD_RPATH "${gloo_folder}")  # as CMake does for libraries that are linked
  endif()
endif()
