# cmake -DSOURCE_DIR=DIR -DVERSION=1.2.3 -DLIBRARIES=TEXT -DTEMPLATE=FILE -DOUTPUT=FILE.cc -P write_version.cmake
#
# Runs in every build, because a commit changes no file that the build watches. OUTPUT is rewritten only when its text
# changes, and only that one file contains the commit, so a commit costs one small compilation and a link.

find_program(git git)
set(COMMIT "")
if(git AND EXISTS "${SOURCE_DIR}/.git")
  execute_process(
    COMMAND "${git}" describe --always --dirty --abbrev=10 --exclude=*
    WORKING_DIRECTORY "${SOURCE_DIR}"
    OUTPUT_VARIABLE COMMIT
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET)  # no commit yet, or a clone of another user: a version without a commit
endif()
configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
