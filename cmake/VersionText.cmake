# SPDX-License-Identifier: Apache-2.0
# Writes HEADER with NANET_VERSION and NANET_COMMIT, if they have changed: from `git describe` of SOURCE where it is a repository with a tag
# vVERSION, else VERSION. COMMIT, if it is not empty, is what to say where there is no repository.
set(version "${VERSION}")
set(commit "${COMMIT}")
set(ENV{GIT_OPTIONAL_LOCKS} 0)
if(EXISTS "${SOURCE}/.git")  # not that of a project that has nanet inside
  execute_process(COMMAND git -C "${SOURCE}" describe --tags --match "v[0-9]*" OUTPUT_VARIABLE described RESULT_VARIABLE result
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(result EQUAL 0)
    string(SUBSTRING "${described}" 1 -1 version)
  endif()
  execute_process(COMMAND git -C "${SOURCE}" rev-parse --short=12 HEAD OUTPUT_VARIABLE head RESULT_VARIABLE result
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(result EQUAL 0)
    set(commit "${head}")
  endif()
endif()
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT "${HEADER}" CONTENT "#define NANET_VERSION \"${version}\"\n#define NANET_COMMIT \"${commit}\"\n" @ONLY)
