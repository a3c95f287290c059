# rollcall_embed(TARGET FUNCTION HEADER NAMESPACE FILE...): embeds the concatenated text of the files, so that the
# program works wherever it is copied. HEADER declares the FUNCTION that returns the text. If a FILE is a target, the
# file that it builds is embedded.

function(rollcall_embed target function header namespace)
  set(files "")
  foreach(file IN LISTS ARGN)
    if(TARGET "${file}")
      list(APPEND files "$<TARGET_FILE:${file}>")
    else()
      list(APPEND files "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
    endif()
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${function}.cc")
  add_custom_command(
    OUTPUT "${source}"
    COMMAND "${CMAKE_COMMAND}"
      "-DINPUT=${files}"
      "-DOUTPUT=${source}"
      "-DHEADER=${header}"
      "-DNAMESPACE=${namespace}"
      "-DFUNCTION=${function}"
      -P "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
    DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
    COMMENT "Embedding ${ARGN}"
    VERBATIM)
  set_property(SOURCE "${source}" PROPERTY UNITY_GROUP embedded)
  target_sources(${target} PRIVATE "${source}")
endfunction()
