# The software bill of materials: which third-party code the program contains or needs, in which version and how it is
# linked, as CycloneDX 1.5 (https://cyclonedx.org). It contains no time and no serial number, so the same build has the
# same bill.

set(ROLLCALL_BILL "${PROJECT_BINARY_DIR}/rollcall.cdx.json")
set(bill_components "")
set(bill_references "")

# rollcall_part(NAME VERSION LICENSE LINKED): LINKED is statically, dynamically, headers, or at run time.
function(rollcall_part name version license linked)
  string(TOLOWER "${name}" key)
  string(REGEX REPLACE "[^a-z0-9]+" "-" key "${key}")
  string(APPEND bill_components "${separator}
    {\"type\": \"library\", \"bom-ref\": \"${key}\", \"name\": \"${name}\", \"version\": \"${version}\",
      \"licenses\": [{\"expression\": \"${license}\"}], \"purl\": \"pkg:generic/${key}@${version}\",
      \"properties\": [{\"name\": \"rollcall:linked\", \"value\": \"${linked}\"}]}")
  string(APPEND bill_references "${separator}\"${key}\"")
  set(bill_components "${bill_components}" PARENT_SCOPE)
  set(bill_references "${bill_references}" PARENT_SCOPE)
  set(separator ", " PARENT_SCOPE)
endfunction()

# "statically" for an archive.
function(rollcall_linkage result library)
  if(library MATCHES "\\.a$")
    set(${result} statically PARENT_SCOPE)
  else()
    set(${result} dynamically PARENT_SCOPE)
  endif()
endfunction()

set(fmt_linked dynamically)
set(compiler_linked dynamically)
get_target_property(fmt_type fmt::fmt TYPE)
if(ROLLCALL_PORTABLE)
  set(fmt_linked headers)
  set(compiler_linked statically)
elseif(fmt_type STREQUAL "STATIC_LIBRARY")
  set(fmt_linked statically)
endif()
list(GET ZLIB_LIBRARIES -1 zlib_library)
rollcall_linkage(zlib_linked "${zlib_library}")
rollcall_header_version(protozero "${PROTOZERO_INCLUDE_DIR}/protozero/version.hpp"
  PROTOZERO_VERSION_MAJOR PROTOZERO_VERSION_MINOR PROTOZERO_VERSION_PATCH)

set(separator "")
rollcall_part("Boost" "${Boost_VERSION_STRING}" BSL-1.0 statically)
rollcall_part("fmt" "${fmt_VERSION}" MIT ${fmt_linked})
rollcall_part("nlohmann-json" "${nlohmann_json_VERSION}" MIT headers)
rollcall_part("CLI11" "${CLI11_VERSION}" BSD-3-Clause headers)
rollcall_part("protozero" "${protozero}" BSD-2-Clause headers)
rollcall_part("zlib" "${ZLIB_VERSION_STRING}" Zlib ${zlib_linked})
if(ROLLCALL_HAS_ZSTD)
  rollcall_linkage(linked "${ROLLCALL_ZSTD_LIBRARY}")
  rollcall_part("zstd" "${zstd}" BSD-3-Clause ${linked})
endif()
if(ROLLCALL_GLOO_INCLUDE_DIR)
  if(ROLLCALL_OPENS_GLOO)
    set(linked "at run time")
  else()
    rollcall_linkage(linked "${ROLLCALL_GLOO_LIBRARY}")
  endif()
  rollcall_part("Gloo" "${gloo_version}" BSD-3-Clause ${linked})
endif()
if(ROLLCALL_NCCL_INCLUDE_DIR AND ROLLCALL_CUDA_INCLUDE_DIR)
  rollcall_part("NCCL" "${nccl_version}" BSD-3-Clause "at run time")
  rollcall_part("CUDA" "${cuda_version}" LicenseRef-NVIDIA-CUDA-EULA "at run time")
endif()
set(runtime_license "GPL-3.0-or-later WITH GCC-exception-3.1")
set(runtime_version "${CMAKE_CXX_COMPILER_VERSION}")
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # another compiler, which knows the release of GCC's library
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -x c++ -std=c++20 -dM -E -include version /dev/null
    OUTPUT_VARIABLE macros)
  string(REGEX REPLACE ".*#define _GLIBCXX_RELEASE ([0-9]+).*" "\\1" runtime_version "${macros}")
endif()
rollcall_part("libstdc++" "${runtime_version}" "${runtime_license}" ${compiler_linked})
rollcall_part("libgcc" "${runtime_version}" "${runtime_license}" ${compiler_linked})

file(CONFIGURE OUTPUT "${ROLLCALL_BILL}" CONTENT [[{
  "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
  "bomFormat": "CycloneDX",
  "specVersion": "1.5",
  "version": 1,
  "metadata": {"component": {"type": "application", "bom-ref": "rollcall", "name": "rollcall",
    "version": "@PROJECT_VERSION@", "licenses": [{"expression": "Apache-2.0"}]}},
  "components": [@bill_components@],
  "dependencies": [{"ref": "rollcall", "dependsOn": [@bill_references@]}]
}
]] @ONLY)
