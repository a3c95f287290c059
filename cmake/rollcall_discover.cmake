# ctest reads this when it starts: it makes one test per scenario, and per case of a scenario with a matrix. See
# rollcall_discover_scenarios() in RollcallScenarios.cmake, which sets the variables.

cmake_policy(VERSION 3.25)

execute_process(
  COMMAND "${PROGRAM}" test --list ${PATHS}
  WORKING_DIRECTORY "${FOLDER}"
  RESULT_VARIABLE code OUTPUT_VARIABLE addresses ERROR_VARIABLE errors)

# A test that fails with the program's own message, if the list or a part of it is missing.
if(NOT code EQUAL 0)
  add_test("${PREFIX}scenarios can be read" "${PROGRAM}" test --list ${PATHS})
  set_tests_properties("${PREFIX}scenarios can be read" PROPERTIES
    LABELS "${LABELS}" WORKING_DIRECTORY "${FOLDER}" ENVIRONMENT NO_COLOR=1)
endif()

# A line is an address, "scenarios/x.json::name[world_size=4]". It must not become a CMake list, in which brackets have
# a meaning.
while(addresses MATCHES "^([^\n]+)\n(.*)$")
  set(address "${CMAKE_MATCH_1}")
  set(addresses "${CMAKE_MATCH_2}")
  set(test "${PREFIX}${address}")
  add_test("${test}" "${PROGRAM}" test "${address}" ${ARGS})
  set_tests_properties("${test}" PROPERTIES
    LABELS "${LABELS}" TIMEOUT "${TIMEOUT}" WORKING_DIRECTORY "${FOLDER}" SKIP_RETURN_CODE 77
    ENVIRONMENT NO_COLOR=1)
endwhile()
