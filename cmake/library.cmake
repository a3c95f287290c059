# rollcall::rollcall is the target that a C++ program links to run rank programs on the simulator and read their
# reports. rollcall::real adds real ranks, and rollcall::cli is the program.

add_library(rollcall_library INTERFACE)
add_library(rollcall::rollcall ALIAS rollcall_library)
set_target_properties(rollcall_library PROPERTIES EXPORT_NAME rollcall)
target_link_libraries(rollcall_library INTERFACE rollcall_engine rollcall_parallel rollcall_viz)

add_executable(rollcall::cli ALIAS rollcall)
set_target_properties(rollcall PROPERTIES EXPORT_NAME cli)

# Makes #include <rollcall/sim/dist.h> work here, after add_subdirectory(rollcall), as it does in an install tree. This
# is a link and not a copy: a header with two paths and one file is still included only once.
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/include")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/include/rollcall" SYMBOLIC)
target_include_directories(rollcall_library INTERFACE "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>")
