// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/cmdline/command_document.h"

namespace resmgr {

// A manual page of section 8 in troff with the macros of man(7), for groff and mandoc. It has no
// date, so that the same program gives the same page.
std::string ManPage(const CommandDocument& document);

}  // namespace resmgr
