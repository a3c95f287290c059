# rollcall_layer(NAME FOLDER DEPENDENCIES...): the static library `NAME` of all FOLDER/*.cc, and of the
# folders right below it.
#
# One library per folder, linked to the folders below it and no others. Folders are small and a new
# file should need no edit here, hence the glob; CONFIGURE_DEPENDS makes the build look again.
# Outside this build `rollcall_dist` is called rollcall::dist: see cmake/install.cmake.

function(rollcall_layer name folder)
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cc" "${folder}/*/*.cc")
  list(REMOVE_ITEM sources "${folder}/main.cc")
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_compile_features(${name} INTERFACE cxx_std_20)  # for users; here the whole build says so
  target_link_libraries(${name} PUBLIC ${ARGN} PRIVATE $<BUILD_INTERFACE:rollcall_warnings>)
  string(REPLACE "rollcall_" "" short_name ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short_name})
  add_library(rollcall::${short_name} ALIAS ${name})
endfunction()
