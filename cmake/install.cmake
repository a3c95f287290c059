# What `cmake --install` installs, in three components: `program` (the command and its documents), `pytest` (the plugin)
# and `development` (headers, libraries, the CMake package).

include(CMakePackageConfigHelpers)

set(rollcall_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rollcall")
set(rollcall_data_dir "${CMAKE_INSTALL_DATADIR}/rollcall")

install(TARGETS rollcall EXPORT rollcallTargets RUNTIME COMPONENT program)
install(FILES scenarios/scenario-v1.schema.json DESTINATION "${rollcall_data_dir}" COMPONENT program)
install(FILES scenarios/counter.json scenarios/uneven_inputs.json DESTINATION "${CMAKE_INSTALL_DOCDIR}/scenarios"
  COMPONENT program)
install(DIRECTORY scenarios/examples scenarios/large scenarios/real_hangs
  DESTINATION "${CMAKE_INSTALL_DOCDIR}/scenarios" COMPONENT program
  FILES_MATCHING PATTERN "*.json")
install(FILES scenarios/pytest/pytest_rollcall.py DESTINATION lib/python3/dist-packages COMPONENT pytest)
install(FILES README.md SECURITY.md "${ROLLCALL_BILL}" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT program)

# Link-time optimization produces objects that only the same compiler can link: fine for the program, useless as a
# library.
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION)
  install(CODE "message(STATUS \"rollcall: built with link-time optimisation, so the C++ library is not \
installed; the preset `package` builds it\")" COMPONENT development)
  return()
endif()

install(TARGETS rollcall_base rollcall_tensor rollcall_c10d rollcall_cost rollcall_report rollcall_train rollcall_parallel rollcall_match
    rollcall_wording rollcall_judge rollcall_backends rollcall_engine rollcall_viz
    rollcall_library
  EXPORT rollcallTargets ARCHIVE COMPONENT development)
install(TARGETS rollcall_real EXPORT rollcallRealTargets ARCHIVE COMPONENT development)
install(EXPORT rollcallTargets NAMESPACE rollcall:: DESTINATION "${rollcall_cmake_dir}" COMPONENT development)
install(EXPORT rollcallRealTargets NAMESPACE rollcall:: DESTINATION "${rollcall_cmake_dir}"
  COMPONENT development)

# Headers are read at install time, so that a header is never older than its library.
install(CODE "set(SOURCE_DIR \"${PROJECT_SOURCE_DIR}\")
  set(INCLUDE_DIR \"${CMAKE_INSTALL_INCLUDEDIR}\")" COMPONENT development)
install(SCRIPT cmake/install_headers.cmake COMPONENT development)

if(ROLLCALL_GLOO_INCLUDE_DIR)
  set(ROLLCALL_HAS_GLOO TRUE)
else()
  set(ROLLCALL_HAS_GLOO FALSE)
endif()
configure_package_config_file(cmake/rollcallConfig.cmake.in rollcallConfig.cmake
  INSTALL_DESTINATION "${rollcall_cmake_dir}")
write_basic_package_version_file(rollcallConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/rollcallConfig.cmake" "${PROJECT_BINARY_DIR}/rollcallConfigVersion.cmake"
    cmake/RollcallScenarios.cmake cmake/rollcall_discover.cmake cmake/rollcall_gloo.cmake cmake/rollcall_zstd.cmake
  DESTINATION "${rollcall_cmake_dir}" COMPONENT development)
