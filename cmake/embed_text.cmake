# cmake "-DINPUT=FILE;..." -DFOLDER=FOLDER -DOUTPUT=FILE.cc -DHEADER=declaring.h -DFUNCTION=name -DNAMESPACE=a::b
#   -P embed_text.cmake
#
# Writes a C++ source whose FUNCTION returns the concatenated text of the INPUT files as a std::string_view; if FOLDER is
# not empty, a span of EmbeddedFile, one for each file. The text is stored as numbers: compilers limit the length of a
# string literal, and no text can break out of an array.

foreach(argument INPUT FOLDER OUTPUT HEADER FUNCTION NAMESPACE)
  if(NOT DEFINED ${argument})
    message(FATAL_ERROR "embed_text.cmake needs -D${argument}=...")
  endif()
endforeach()

# One array of all bytes. A row of the table is a file's name and its part of them.
set(hex "")
set(rows "")
set(begin 0)
foreach(file IN LISTS INPUT)
  file(READ "${file}" part HEX)
  file(SIZE "${file}" size)
  string(APPEND hex "${part}")
  cmake_path(IS_PREFIX FOLDER "${file}" is_inside)
  if(is_inside)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${FOLDER}" OUTPUT_VARIABLE name)
  else()
    cmake_path(GET file FILENAME name)
  endif()
  string(APPEND rows "\n      {\"${name}\", text.substr(${begin}, ${size})},")
  math(EXPR begin "${begin} + ${size}")
endforeach()
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")

if(FOLDER STREQUAL "")
  set(type "std::string_view")
  set(result "text")
else()
  set(type "std::span<const EmbeddedFile>")
  set(result "files")
  set(files "static const EmbeddedFile files[] = {${rows}};")
endif()
file(WRITE "${OUTPUT}" "// Generated from files of rollcall.

#include \"${HEADER}\"

namespace ${NAMESPACE} {

namespace {

constexpr unsigned char ${FUNCTION}_bytes[] = {
${bytes}
0x00};

}  // namespace

${type} ${FUNCTION}() {
  static const std::string_view text = {reinterpret_cast<const char*>(${FUNCTION}_bytes), ${begin}};
  ${files}
  return ${result};
}

}  // namespace ${NAMESPACE}
")
