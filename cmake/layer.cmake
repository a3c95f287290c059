# rollcall_layer(NAME FOLDER DEPENDENCIES...): the static library `NAME` of all FOLDER/*.cc, and of the
# folders right below it.
#
# One library per folder, linked to the folders below it and no others. Folders are small and a new
# file should need no edit here, hence the glob; CONFIGURE_DEPENDS makes the build look again.

function(rollcall_layer name folder)
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cc" "${folder}/*/*.cc")
  list(REMOVE_ITEM sources "${folder}/main.cc")
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${ARGN} PRIVATE rollcall_warnings)
endfunction()
