# rollcall_embed(TARGET FUNCTION HEADER NAMESPACE [FOLDER folder] FILE...): embeds the concatenated text of the files, so
# that the program works wherever it is copied. HEADER declares the FUNCTION that returns the text; with FOLDER, a span
# of EmbeddedFile, one for each file, named by its path in that folder. If a FILE is a target, the file that it builds is
# embedded.

function(rollcall_embed target function header namespace)
  cmake_parse_arguments(PARSE_ARGV 4 embed "" FOLDER "")
  set(files "")
  foreach(file IN LISTS embed_UNPARSED_ARGUMENTS)
    if(TARGET "${file}")
      list(APPEND files "$<TARGET_FILE:${file}>")
    else()
      cmake_path(ABSOLUTE_PATH file)
      list(APPEND files "${file}")
    endif()
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${function}.cc")
  add_custom_command(
    OUTPUT "${source}"
    COMMAND "${CMAKE_COMMAND}"
      "-DINPUT=${files}"
      "-DFOLDER=${embed_FOLDER}"
      "-DOUTPUT=${source}"
      "-DHEADER=${header}"
      "-DNAMESPACE=${namespace}"
      "-DFUNCTION=${function}"
      -P "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
    DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
    COMMENT "Embedding ${function}"
    VERBATIM)
  set_property(SOURCE "${source}" PROPERTY UNITY_GROUP embedded)
  target_sources(${target} PRIVATE "${source}")
endfunction()
