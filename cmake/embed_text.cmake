# cmake "-DINPUT=FILE;..." -DOUTPUT=FILE.cc -DHEADER=declaring.h -DFUNCTION=name -DNAMESPACE=a::b -P embed_text.cmake
#
# Writes a C++ source whose FUNCTION returns the concatenated text of the INPUT files as a std::string_view. The text is
# stored as numbers: compilers limit the length of a string literal, and no text can break out of an array.

foreach(argument INPUT OUTPUT HEADER FUNCTION NAMESPACE)
  if(NOT DEFINED ${argument})
    message(FATAL_ERROR "embed_text.cmake needs -D${argument}=...")
  endif()
endforeach()

set(hex "")
set(input_name "")
foreach(file IN LISTS INPUT)
  file(READ "${file}" part HEX)
  string(APPEND hex "${part}")
  cmake_path(GET file FILENAME part)
  list(APPEND input_name "${part}")
endforeach()
list(JOIN input_name ", " input_name)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")

file(WRITE "${OUTPUT}" "// Generated from ${input_name}.

#include \"${HEADER}\"

namespace ${NAMESPACE} {

namespace {

constexpr unsigned char ${FUNCTION}_bytes[] = {
${bytes}
0x00};

}  // namespace

std::string_view ${FUNCTION}() {
  return {reinterpret_cast<const char*>(${FUNCTION}_bytes), sizeof ${FUNCTION}_bytes - 1};
}

}  // namespace ${NAMESPACE}
")
