# Included by CMake right after ggml's project(): what a compiler does wrong to ggml, put right for that file alone.
#
# GCC before 14 (and before 11.5, 12.4 and 13.3) declares that _tile_loadconfig reads 8 of the 64 bytes of a tile
# configuration. The stores to the other 56 are then removed as dead, and the first AMX instruction of a quantised
# model ends the process with SIGILL. Keeping dead stores in that one file costs nothing that can be measured.

function(llamasweep_put_right)
  set(amx_source "${CMAKE_CURRENT_SOURCE_DIR}/src/ggml-cpu/amx/mmq.cpp")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14
     AND TARGET ggml-cpu AND EXISTS "${amx_source}")
    set_source_files_properties("${amx_source}" TARGET_DIRECTORY ggml-cpu
                                PROPERTIES COMPILE_OPTIONS "-fno-tree-dse;-fno-dse")
    message(STATUS "llamasweep: amx/mmq.cpp keeps dead stores (GCC ${CMAKE_CXX_COMPILER_VERSION})")
    file(APPEND "${CMAKE_BINARY_DIR}/llamasweep-workarounds.txt" "amx/mmq.cpp: -fno-tree-dse -fno-dse\n")
  endif()
endfunction()

cmake_language(DEFER CALL llamasweep_put_right)
