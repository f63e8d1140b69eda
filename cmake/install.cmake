# SPDX-License-Identifier: Apache-2.0
# Installing: library, headers, CMake package, pkg-config file, documents.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(
    TARGETS tconv_cl
    EXPORT tconv_clTargets
    INCLUDES
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(
    DIRECTORY include/tconv_cl
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING
    PATTERN "*.h"
    PATTERN "*.hpp")
if(TCONV_BUILD_PYTHON)
    install(
        TARGETS tconv_cl
        LIBRARY DESTINATION tconv_cl COMPONENT python
        RUNTIME DESTINATION tconv_cl COMPONENT python) # a DLL
    if(TARGET tconv-cl AND SKBUILD) # scikit-build-core names the folders of the wheel
        install(TARGETS tconv-cl RUNTIME DESTINATION "${SKBUILD_SCRIPTS_DIR}" COMPONENT python)
        if(TCONV_LICENSES)
            file(GLOB licenses "${TCONV_LICENSES}/*")
            install(FILES ${licenses} DESTINATION "${SKBUILD_METADATA_DIR}/licenses"
                    COMPONENT python)
        endif()
    endif()
elseif(TARGET tconv-cl)
    set(rpath "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
        set(rpath "${CMAKE_INSTALL_LIBDIR}")
    endif()
    set_target_properties(tconv-cl PROPERTIES INSTALL_RPATH "${rpath}")
    install(TARGETS tconv-cl)
    if(TARGET tconv_manual)
        install(
            DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/manual/
            DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
            FILES_MATCHING
            PATTERN "*.1")
        install(FILES ${CMAKE_CURRENT_BINARY_DIR}/manual/completion.bash
                DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
                RENAME tconv-cl)
        install(FILES ${CMAKE_CURRENT_BINARY_DIR}/manual/completion.zsh
                DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
                RENAME _tconv-cl)
    endif()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tconv_cl)
install(EXPORT tconv_clTargets NAMESPACE tconv_cl:: DESTINATION ${package_dir})
configure_package_config_file(
    cmake/tconv_clConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/tconv_clConfig.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(
    ${CMAKE_CURRENT_BINARY_DIR}/tconv_clConfigVersion.cmake
    VERSION ${PROJECT_VERSION}
    COMPATIBILITY SameMinorVersion)
install(
    FILES ${CMAKE_CURRENT_BINARY_DIR}/tconv_clConfig.cmake
          ${CMAKE_CURRENT_BINARY_DIR}/tconv_clConfigVersion.cmake
    DESTINATION ${package_dir})

# The .pc file finds its prefix from where it lies, so that an installation can be moved.
set(TCONV_PC_REQUIRES OpenCL)
if(TCONV_OPENCL_AT_RUN_TIME)
    set(TCONV_PC_REQUIRES "")
endif()
# What a static library leaves to the program: as the sources call them, threads and dlopen.
set(TCONV_PC_LIBS_PRIVATE "")
if(UNIX AND NOT APPLE)
    list(TRANSFORM CMAKE_DL_LIBS PREPEND " -l" OUTPUT_VARIABLE libraries)
    set(TCONV_PC_LIBS_PRIVATE "-pthread${libraries}")
endif()
set(TCONV_PC_CFLAGS "")
if(WIN32 AND library_type STREQUAL STATIC_LIBRARY)
    set(TCONV_PC_CFLAGS " -DTCONV_STATIC")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(TCONV_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
    set(TCONV_PC_LIBDIR "${CMAKE_INSTALL_FULL_LIBDIR}")
    set(TCONV_PC_INCLUDEDIR "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
else() # the installed folder may be moved
    file(RELATIVE_PATH above "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
    set(TCONV_PC_PREFIX "\${pcfiledir}/${above}")
    set(TCONV_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
    set(TCONV_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(cmake/tconv_cl.pc.in ${CMAKE_CURRENT_BINARY_DIR}/tconv_cl.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tconv_cl.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(NOT PROJECT_IS_TOP_LEVEL)
    return()
endif()

# Documents, and what they link to (device_tests/installed/links.sh checks it). The headers are
# installed above; beside the documents is a symbolic link to them.
set(link ${CMAKE_CURRENT_BINARY_DIR}/beside_documents/include)
file(RELATIVE_PATH headers ${CMAKE_INSTALL_FULL_DOCDIR} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/beside_documents)
file(CREATE_LINK ${headers} ${link} SYMBOLIC)
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md ${link}
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(
    DIRECTORY docs cl examples
    DESTINATION ${CMAKE_INSTALL_DOCDIR}
    PATTERN __pycache__ EXCLUDE)
foreach(file python/README.md python/versions.txt device_tests/vectors/README.md fuzz/README.md)
    cmake_path(GET file PARENT_PATH folder)
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
