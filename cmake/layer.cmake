# rollcall_layer(NAME FOLDERS FOLDER... [LINKS TARGET...]): makes the static library `NAME` of all FOLDER/*.cc.
#
# A library links the libraries below it and no others, so the linker enforces what tests/style/tidy_test.cc says
# about #includes. Folders are small and a new file should need no edit here, hence the glob; CONFIGURE_DEPENDS makes
# the build check for new files. Unity builds compile a folder as one file, and consecutive small folders together: most
# of a compilation is headers, which are then read once. So no two unnamed namespaces of a library may use the same
# name. Outside this build, `rollcall_c10d` is called rollcall::c10d: see cmake/install.cmake.

function(rollcall_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "FOLDERS;LINKS")
  set(sources "")
  set(unit_bytes_max 160000)
  set(unit_bytes ${unit_bytes_max})
  foreach(folder IN LISTS layer_FOLDERS)
    file(GLOB files CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc")
    set(bytes 0)
    foreach(file IN LISTS files)
      file(SIZE "${file}" size)
      math(EXPR bytes "${bytes} + ${size}")
    endforeach()
    math(EXPR unit_bytes "${unit_bytes} + ${bytes}")
    if(unit_bytes GREATER unit_bytes_max)
      string(MAKE_C_IDENTIFIER "${folder}" unit)
      set(unit_bytes ${bytes})
    endif()
    set_property(SOURCE ${files} PROPERTY UNITY_GROUP ${unit})
    list(APPEND sources ${files})
  endforeach()
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_compile_features(${name} INTERFACE cxx_std_20)  # for users; our own build sets it globally
  target_link_libraries(${name} PUBLIC ${layer_LINKS} PRIVATE $<BUILD_INTERFACE:rollcall_warnings>)
  string(REPLACE "rollcall_" "" short_name ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short_name} UNITY_BUILD_MODE GROUP)
  add_library(rollcall::${short_name} ALIAS ${name})
endfunction()
