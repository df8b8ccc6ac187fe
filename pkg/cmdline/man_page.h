// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/cmdline/command_document.h"

namespace resmgr {

// A manual page of section 8 in troff with the macros of man(7), for groff and mandoc. It has no
// date, so that the same program gives the same page.
std::string ManPage(const CommandDocument& document);

// Text as it stands in troff: hyphens can be copied to a shell, and no line becomes a request.
std::string TroffText(std::string_view text);

}  // namespace resmgr
