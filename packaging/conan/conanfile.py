# SPDX-License-Identifier: Apache-2.0
"""tconv-cl for Conan 2: conan create packaging/conan. The package has the library and its headers, not the tool."""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"


class TconvCl(ConanFile):
    name = "tconv-cl"
    description = "Transposed convolution on any OpenCL device"
    license = "Apache-2.0"
    topics = ("opencl", "convolution", "deconvolution", "neural-networks", "gpu")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True}
    implements = ["auto_shared_fpic"]
    languages = "C"
    generators = ("CMakeDeps",)

    @property
    def tree(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self.tree, "include", "tconv_cl", "version.h"))
        self.version = re.search(r'TCONV_VERSION_STRING "(.*)"', header).group(1)

    def export_sources(self):
        files = ["CMakeLists.txt", "LICENSE", "python/versions.txt"]
        files += ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]  # which are installed
        files += [folder + "/README.md" for folder in ("python", "fuzz", "device_tests/vectors")]
        for pattern in files + [folder + "/*" for folder in ("cl", "cmake", "docs", "examples", "include", "src")]:
            copy(self, pattern, self.tree, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("opencl-headers/2023.12.14", transitive_headers=True)
        self.requires("opencl-icd-loader/2023.12.14", transitive_libs=True)
        self.requires("xxhash/[>=0.8.1 <0.9]", visible=False)

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update(TCONV_BUILD_TOOL=False, TCONV_BUILD_TESTS=False)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        for folder in ("share", os.path.join("lib", "cmake"), os.path.join("lib", "pkgconfig")):  # Conan makes its own
            rmdir(self, os.path.join(self.package_folder, folder))

    def package_info(self):
        self.cpp_info.libs = ["tconv_cl"]
        self.cpp_info.set_property("cmake_file_name", "tconv_cl")
        self.cpp_info.set_property("cmake_target_name", "tconv_cl::tconv_cl")
        self.cpp_info.set_property("pkg_config_name", "tconv_cl")
        if not self.options.shared and self.settings.os == "Linux":
            self.cpp_info.system_libs = ["pthread"]
