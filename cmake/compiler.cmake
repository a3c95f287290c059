# Compilers, flags, sanitizers and warnings: how a file is compiled.

include(CheckCXXSourceCompiles)

# Call sites come from std::source_location, which is the first thing that an old compiler lacks. An error in a header
# would not say what to do about it; this message does.
set(CMAKE_REQUIRED_FLAGS "-std=c++20")
check_cxx_source_compiles("
  #include <source_location>
  int main() { return static_cast<int>(std::source_location::current().line()) == 0; }
" ROLLCALL_HAS_SOURCE_LOCATION)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT ROLLCALL_HAS_SOURCE_LOCATION)
  message(FATAL_ERROR
    "rollcall needs a compiler with C++20's std::source_location: GCC 12 or newer, or Clang 16 or newer. "
    "This is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} (${CMAKE_CXX_COMPILER}). "
    "Clang 14 with GCC's standard library lacks it. Choose another with -DCMAKE_CXX_COMPILER=g++-12.")
endif()

# Keeps reports the same on every machine: a * b + c must not be fused into one rounding. GCC fuses by default where the
# processor can (always on aarch64, with -march=native on x86-64), which changes the last bit of float arithmetic, and
# with it every value and fingerprint derived from it.
add_compile_options(-ffp-contract=off)

# GCC collects garbage while it reads headers, from 128 MB on. A heap that may grow first takes an eighth off the time
# of a build, and memory: up to 1.4 GB per compilation, of which Ninja runs two more than there are processors.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT ROLLCALL_REPRODUCIBLE)
  cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
  cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR mib_per_compilation "${memory_mib} / (${processors} + 2)")
  if(mib_per_compilation GREATER 2000)
    add_compile_options(--param=ggc-min-heapsize=1000000)  # in kB
  endif()
endif()

if(ROLLCALL_SANITIZE)
  add_compile_options(-fsanitize=${ROLLCALL_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ROLLCALL_SANITIZE})
  if(ROLLCALL_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)  # a finding fails its test
  endif()
endif()

if(ROLLCALL_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "libFuzzer is part of Clang: use the preset fuzz, or -DCMAKE_CXX_COMPILER=clang++-16")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(ROLLCALL_REPRODUCIBLE)
  # Assertions contain their paths. Only packages are built this way: ccache would take each checkout for a different
  # program.
  add_compile_options(
    "-ffile-prefix-map=${PROJECT_BINARY_DIR}/=" "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" -Werror=date-time)
  set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> qcD <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_CXX_ARCHIVE_FINISH "<CMAKE_RANLIB> -D <TARGET>")
endif()

# A build folder that started without ccache stays without it: another launcher would compile everything again.
if(NOT DEFINED ROLLCALL_CCACHE)
  find_program(ROLLCALL_CCACHE ccache)
endif()
mark_as_advanced(ROLLCALL_CCACHE)
if(ROLLCALL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache caches files with a precompiled header, such as the tests, only with this setting.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${ROLLCALL_CCACHE}")
endif()

# Only our own targets link this, so that projects that embed rollcall do not inherit the list.
add_library(rollcall_warnings INTERFACE)
target_compile_options(rollcall_warnings INTERFACE
  -Wall
  -Wextra
  $<$<NOT:$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wshadow>  # within a file, not across a unity build's files
  -Wnon-virtual-dtor
  -Woverloaded-virtual
  -Wimplicit-fallthrough
  -Wextra-semi
  $<$<BOOL:${ROLLCALL_WERROR}>:-Werror>)
