# The manual page, the completions, and the documents that Debian requires with a program. The program itself writes the
# first two, so they are built after it.

find_program(ROLLCALL_GZIP gzip)
mark_as_advanced(ROLLCALL_GZIP)
set(documents "${PROJECT_BINARY_DIR}/documents")
file(MAKE_DIRECTORY "${documents}")

# rollcall_document(FILE DESTINATION [ARGUMENT...]): makes FILE from the output of `rollcall ARGUMENT...`.
function(rollcall_document file destination)
  add_custom_command(OUTPUT "${documents}/${file}"
    COMMAND rollcall ${ARGN} --output "${documents}/${file}"
    DEPENDS rollcall
    COMMENT "Writing ${file}"
    VERBATIM)
  set_property(GLOBAL APPEND PROPERTY ROLLCALL_DOCUMENTS "${documents}/${file}")
  if(destination)
    install(FILES "${documents}/${file}" DESTINATION "${destination}" COMPONENT program)
  endif()
endfunction()

rollcall_document(rollcall "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" completion bash)
rollcall_document(_rollcall "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions" completion zsh)
rollcall_document(rollcall.fish "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" completion fish)
rollcall_document(rollcall.1 "" manual)

# Compresses without a time stamp, so that the same sources give the same package. rollcall_compressed(FILE DESTINATION
# COMPONENT)
function(rollcall_compressed file destination component)
  get_property(known GLOBAL PROPERTY ROLLCALL_DOCUMENTS)
  if(ROLLCALL_GZIP AND NOT "${file}.gz" IN_LIST known)
    add_custom_command(OUTPUT "${file}.gz"
      COMMAND "${ROLLCALL_GZIP}" --best --no-name --keep --force "${file}"
      DEPENDS "${file}"
      COMMENT ""
      VERBATIM)
  endif()
  if(ROLLCALL_GZIP)
    set(file "${file}.gz")
  endif()
  set_property(GLOBAL APPEND PROPERTY ROLLCALL_DOCUMENTS "${file}")
  install(FILES "${file}" DESTINATION "${destination}" COMPONENT ${component})
endfunction()

rollcall_compressed("${documents}/rollcall.1" "${CMAKE_INSTALL_MANDIR}/man1" program)

configure_file(CHANGELOG.md "${documents}/changelog" COPYONLY)
rollcall_compressed("${documents}/changelog" "${CMAKE_INSTALL_DATADIR}/doc/rollcall" program)

# Debian's copyright and changelog for each package. The date is that of the sources.
execute_process(COMMAND git log -1 --format=%aD WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
  OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT date)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, if it is set
endif()
configure_file(cmake/debian/changelog.in "${documents}/changelog.Debian" @ONLY)
foreach(package_and_component "rollcall;program" "librollcall-dev;development" "python3-pytest-rollcall;pytest")
  list(POP_FRONT package_and_component package component)
  set(folder "${CMAKE_INSTALL_DATADIR}/doc/${package}")
  rollcall_compressed("${documents}/changelog.Debian" "${folder}" ${component})
  install(FILES cmake/debian/copyright DESTINATION "${folder}" COMPONENT ${component})
endforeach()

get_property(files GLOBAL PROPERTY ROLLCALL_DOCUMENTS)
list(REMOVE_DUPLICATES files)
add_custom_target(rollcall_documents ALL DEPENDS ${files})
