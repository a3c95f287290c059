# ROLLCALL_LIBRARIES: what `rollcall --version` says about the libraries that it was built with. The versions of Gloo
# and of NVIDIA's libraries come from their headers.

# rollcall_header_version(RESULT FILE MACRO...): makes "2.27.3" from `#define MACRO 2` and so on.
function(rollcall_header_version result file)
  set(parts "")
  foreach(macro IN LISTS ARGN)
    file(STRINGS "${file}" line REGEX "^#define[ \t]+${macro}[ \t]+[0-9]+" LIMIT_COUNT 1)
    string(REGEX REPLACE ".*${macro}[ \t]+([0-9]+).*" "\\1" part "${line}")
    list(APPEND parts "${part}")
  endforeach()
  list(JOIN parts "." version)
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

set(ROLLCALL_LIBRARIES "built with Boost ${Boost_VERSION_STRING}, fmt ${fmt_VERSION}, nlohmann-json \
${nlohmann_json_VERSION}, CLI11 ${CLI11_VERSION}, zlib ${ZLIB_VERSION_STRING}")
if(ROLLCALL_HAS_ZSTD)
  rollcall_header_version(zstd "${ROLLCALL_ZSTD_INCLUDE_DIR}/zstd.h"
    ZSTD_VERSION_MAJOR ZSTD_VERSION_MINOR ZSTD_VERSION_RELEASE)
  string(APPEND ROLLCALL_LIBRARIES ", zstd ${zstd}")
endif()

set(gloo "without Gloo")
if(ROLLCALL_GLOO_INCLUDE_DIR)
  rollcall_header_version(gloo_version "${ROLLCALL_GLOO_INCLUDE_DIR}/gloo/config.h"
    GLOO_VERSION_MAJOR GLOO_VERSION_MINOR GLOO_VERSION_PATCH)
  set(gloo "with Gloo ${gloo_version}")
endif()
set(nccl "without CUDA and NCCL")
if(ROLLCALL_NCCL_INCLUDE_DIR AND ROLLCALL_CUDA_INCLUDE_DIR)
  rollcall_header_version(nccl_version "${ROLLCALL_NCCL_INCLUDE_DIR}/nccl.h" NCCL_MAJOR NCCL_MINOR NCCL_PATCH)
  rollcall_header_version(cuda "${ROLLCALL_CUDA_INCLUDE_DIR}/cuda_runtime_api.h" CUDART_VERSION)
  math(EXPR cuda_major "${cuda} / 1000")
  math(EXPR cuda_minor "${cuda} % 1000 / 10")
  set(cuda_version "${cuda_major}.${cuda_minor}")
  set(nccl "with the headers of CUDA ${cuda_version} and NCCL ${nccl_version}")
endif()
string(APPEND ROLLCALL_LIBRARIES "\\nreal ranks ${gloo}, ${nccl}\\n\
by ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} for ${CMAKE_SYSTEM_PROCESSOR}")
