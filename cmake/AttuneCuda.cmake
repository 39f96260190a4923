# GPUs: the sources in attune/kernels/cuda. Defines attune_cuda_sources(TARGET), which adds them to a target,
# appends the libraries that they need to ATTUNE_LIBRARIES, and sets ATTUNE_CUDA_OBJECTS to the objects that
# $<TARGET_OBJECTS:TARGET> lacks, because other commands or targets make them.
#   ATTUNE_CUDA=OFF       leaves them out (default)
#   ATTUNE_CUDA=ON        compiles *.cu with nvcc; AUTO does where nvcc is found
#   ATTUNE_CUDA=EMULATED  compiles them with the host's compiler and runs their threads there: for tests without a GPU
# ATTUNE_NVCC names nvcc. If it is not set, nvcc is looked for in the PATH, in /usr/local/cuda, and in .cuda/toolkit,
# where `scripts/setup cuda` puts the toolkit from PyPI.
set(ATTUNE_CUDA OFF CACHE STRING "GPUs: ON, OFF, AUTO, where nvcc is found, or EMULATED, for tests on the host")
set_property(CACHE ATTUNE_CUDA PROPERTY STRINGS AUTO ON OFF EMULATED)

set(ATTUNE_CUDA_BUILT OFF)
if(ATTUNE_CUDA STREQUAL "EMULATED")
  set(ATTUNE_CUDA_BUILT ON)
elseif(ATTUNE_CUDA)
  find_program(ATTUNE_NVCC nvcc PATHS /usr/local/cuda/bin ${PROJECT_SOURCE_DIR}/.cuda/toolkit/bin)
  if(ATTUNE_NVCC)
    set(ATTUNE_CUDA_BUILT ON)
    execute_process(COMMAND ${ATTUNE_NVCC} --version OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCH "release ([0-9.]+)" version "${version}")
    set(architectures 80 90)
    if(CMAKE_MATCH_1 VERSION_GREATER_EQUAL 12.8)  # the first that knows it; with older ones such GPUs run the PTX of 90
      list(APPEND architectures 100)
    endif()
    set(ATTUNE_CUDA_ARCHITECTURES ${architectures} CACHE STRING
        "Compute capabilities; the newest also as PTX, for later GPUs")
  elseif(NOT ATTUNE_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "ATTUNE_CUDA = ${ATTUNE_CUDA}, but nvcc is missing: `scripts/setup cuda` gets it")
  endif()
endif()

if(ATTUNE_CUDA_BUILT)  # is found before attune/tensor/built_devices.h of the sources
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cuda/attune/tensor/built_devices.h CONTENT
       "#pragma once\n\nnamespace attune {\n\ninline constexpr bool kBuiltWithCuda = true;\n\n}  // namespace attune\n")
  include_directories(BEFORE ${PROJECT_BINARY_DIR}/cuda)
endif()

# Compiles one source with nvcc to an object. nvcc has flags of its own: those of attune_build are for the compiler of
# the host.
function(attune_nvcc source object)
  cmake_path(GET source STEM name)
  set(code "")
  foreach(architecture IN LISTS ATTUNE_CUDA_ARCHITECTURES)
    list(APPEND code -gencode arch=compute_${architecture},code=sm_${architecture})
    set(newest ${architecture})
  endforeach()
  list(APPEND code -gencode arch=compute_${newest},code=compute_${newest})
  add_custom_command(OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d COMMENT "nvcc ${name}.cu"
    COMMAND ${ATTUNE_NVCC} -c ${source} -o ${object} -MD -MF ${object}.d -std=c++20 -O3 ${code} -t 1
            -ccbin ${CMAKE_CXX_COMPILER} --expt-relaxed-constexpr -Werror all-warnings -DNDEBUG -DFMT_SHARED
            -Xcompiler=-Wall,-Wextra,-fPIC,-fvisibility=hidden -I${PROJECT_BINARY_DIR}/cuda -I${PROJECT_SOURCE_DIR}
    VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
endfunction()

# Adds the sources for GPUs to the target: *_gpu.cpp call the libraries of CUDA, *_emulated.cpp stand for them in the
# emulation, *_missing.cpp where a library is not there.
function(attune_cuda_sources target)
  if(NOT ATTUNE_CUDA_BUILT)
    return()
  endif()
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/attune/kernels/cuda/*.cu)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/attune/kernels/cuda/*.cpp)
  if(ATTUNE_CUDA STREQUAL "EMULATED")
    list(FILTER sources EXCLUDE REGEX "_(gpu|missing)\\.cpp$")
    set_source_files_properties(${kernels} TARGET_DIRECTORY ${target} PROPERTIES LANGUAGE CXX)
    set(rounded gemm/panel_linear.cu gemm/panel_weight.cu)  # after each operation, as on a GPU
    list(TRANSFORM rounded PREPEND attune/kernels/cuda/)
    set_source_files_properties(${rounded} TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
    target_sources(${target} PRIVATE ${kernels} ${sources})
    return()
  endif()
  list(FILTER sources EXCLUDE REGEX "_emulated\\.cpp$")
  cmake_path(GET ATTUNE_NVCC PARENT_PATH folder)
  cmake_path(GET folder PARENT_PATH folder)
  file(REAL_PATH ${folder} toolkit)  # in packages of PyPI, NCCL lies beside it
  find_path(ATTUNE_NCCL_INCLUDE_DIR nccl.h HINTS ${folder}/include ${toolkit}/../nccl/include /usr/local/cuda/include)
  if(ATTUNE_NCCL_INCLUDE_DIR)
    list(FILTER sources EXCLUDE REGEX "_missing\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/collectives_gpu\\.cpp$")
    message(STATUS "nccl.h is missing: ranks exchange gradients of GPUs through the memory of the host")
  endif()
  add_library(attune_cuda_host OBJECT ${sources})  # only what the compiler of the host compiles
  target_include_directories(attune_cuda_host PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(attune_cuda_host PRIVATE attune_build ${ATTUNE_LIBRARIES})
  set(objects "")
  foreach(kernel IN LISTS kernels)
    cmake_path(GET kernel STEM name)
    set(object ${PROJECT_BINARY_DIR}/cuda/${name}.o)
    attune_nvcc(${kernel} ${object})
    list(APPEND objects ${object})
  endforeach()
  add_custom_target(attune_cuda_kernels SOURCES ${objects})  # only what nvcc compiles
  list(APPEND objects $<TARGET_OBJECTS:attune_cuda_host>)
  target_sources(${target} PRIVATE ${objects})
  set(ATTUNE_CUDA_OBJECTS ${objects} PARENT_SCOPE)
  find_path(ATTUNE_CUDA_INCLUDE_DIR cuda_runtime.h HINTS ${folder}/include /usr/local/cuda/include REQUIRED)
  find_library(ATTUNE_CUDART cudart_static HINTS ${folder}/lib ${folder}/lib64 /usr/local/cuda/lib64 /usr/local/cuda/lib
               REQUIRED)
  target_compile_options(attune_cuda_host PRIVATE -isystem ${ATTUNE_CUDA_INCLUDE_DIR})
  set(folder_of_sources ${PROJECT_SOURCE_DIR}/attune/kernels/cuda)
  set(nccl_source ${folder_of_sources}/runtime/collectives_gpu.cpp)
  cmake_path(GET ATTUNE_CUDART PARENT_PATH libraries)  # where cuBLASLt and NCCL are looked for if the system has none
  set_property(SOURCE ${folder_of_sources}/gemm/products_gpu.cpp ${nccl_source} TARGET_DIRECTORY ${target}
               APPEND PROPERTY COMPILE_DEFINITIONS "ATTUNE_CUDA_LIBRARIES=\"${libraries}\"")
  if(ATTUNE_NCCL_INCLUDE_DIR)
    cmake_path(GET ATTUNE_NCCL_INCLUDE_DIR PARENT_PATH nccl)
    set_property(SOURCE ${nccl_source} TARGET_DIRECTORY ${target} APPEND PROPERTY COMPILE_DEFINITIONS
                 "ATTUNE_NCCL_LIBRARIES=\"${nccl}/lib\"")
    set_property(SOURCE ${nccl_source} TARGET_DIRECTORY ${target} APPEND PROPERTY COMPILE_OPTIONS
                 "-isystem;${ATTUNE_NCCL_INCLUDE_DIR}")
  endif()
  set(ATTUNE_LIBRARIES ${ATTUNE_LIBRARIES} ${ATTUNE_CUDART} ${CMAKE_DL_LIBS} rt PARENT_SCOPE)
endfunction()
