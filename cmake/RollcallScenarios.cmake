# Scenario files as CTest tests.
#
#   rollcall_add_scenario_test(NAME FILE [SEED n] [ARGS arg...] [LABELS label...] [TIMEOUT seconds])
#   rollcall_discover_scenarios([PATH...] [PREFIX text] [ARGS arg...] [LABELS label...] [TIMEOUT seconds])
#
# A test passes when its scenario ends as its "expect" says, so a scenario that expects a deadlock passes when it
# deadlocks; do not use WILL_FAIL. The first function makes one test of all cases in one file. The second makes a test
# for each case. It takes files and folders, `scenarios` by default, and scans them whenever ctest starts: a new
# scenario is a new test without a build, and a file that cannot be read is a failing test. Its tests are called PREFIX
# and the path, relative to the folder of the calling CMakeLists.txt. Every test has the label `rollcall`. TIMEOUT is 60
# by default: the wall-clock time of one scenario, whatever it simulates.

function(rollcall_add_scenario_test name file)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "SEED;TIMEOUT" "ARGS;LABELS")
  _rollcall_check_arguments(rollcall_add_scenario_test
    "${arg_UNPARSED_ARGUMENTS}" "${arg_KEYWORDS_MISSING_VALUES}" arg_TIMEOUT)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  if(DEFINED arg_SEED)
    list(PREPEND arg_ARGS --seed ${arg_SEED})
  endif()
  add_test(NAME "${name}" COMMAND rollcall::cli test "${file}" ${arg_ARGS})
  set_tests_properties("${name}" PROPERTIES
    LABELS "rollcall;${arg_LABELS}" TIMEOUT "${arg_TIMEOUT}" REQUIRED_FILES "${file}"
    SKIP_RETURN_CODE 77 ENVIRONMENT NO_COLOR=1)
endfunction()

function(rollcall_discover_scenarios)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PREFIX;TIMEOUT" "ARGS;LABELS")
  set(paths ${arg_UNPARSED_ARGUMENTS})
  if(NOT paths)
    set(paths scenarios)
  endif()
  _rollcall_check_arguments(rollcall_discover_scenarios "" "${arg_KEYWORDS_MISSING_VALUES}" arg_TIMEOUT)
  # Two calls of one folder must not share a file.
  get_property(number DIRECTORY PROPERTY ROLLCALL_DISCOVERIES)
  if(NOT number)
    set(number 0)
  endif()
  math(EXPR number "${number} + 1")
  set_property(DIRECTORY PROPERTY ROLLCALL_DISCOVERIES ${number})
  set(file "${CMAKE_CURRENT_BINARY_DIR}/rollcall_scenarios_${number}")
  string(CONFIGURE [==[
set(PROGRAM [=[$<TARGET_FILE:rollcall::cli>]=])
set(FOLDER [=[@CMAKE_CURRENT_SOURCE_DIR@]=])
set(PATHS [=[@paths@]=])
set(PREFIX [=[@arg_PREFIX@]=])
set(ARGS [=[@arg_ARGS@]=])
set(LABELS [=[rollcall;@arg_LABELS@]=])
set(TIMEOUT [=[@arg_TIMEOUT@]=])
include([=[@CMAKE_CURRENT_FUNCTION_LIST_DIR@/rollcall_discover.cmake]=])
]==] text @ONLY)
  file(GENERATE OUTPUT "${file}_$<CONFIG>.cmake" CONTENT "${text}")
  # Multi-configuration generators tell ctest which configuration is tested; others have only one.
  file(WRITE "${file}.cmake" "if(NOT CTEST_CONFIGURATION_TYPE)
  set(CTEST_CONFIGURATION_TYPE [=[${CMAKE_BUILD_TYPE}]=])
endif()
include(\"${file}_\${CTEST_CONFIGURATION_TYPE}.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${file}.cmake")
endfunction()

# Rejects unknown arguments and missing values, and sets the default timeout.
function(_rollcall_check_arguments function unknown incomplete timeout)
  if(unknown)
    message(FATAL_ERROR "${function}: unknown arguments: ${unknown}")
  endif()
  if(incomplete)
    message(FATAL_ERROR "${function}: a value is missing after: ${incomplete}")
  endif()
  if(NOT DEFINED ${timeout})
    set(${timeout} 60 PARENT_SCOPE)
  endif()
endfunction()
