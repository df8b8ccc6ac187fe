// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace resmgr {

// Whether no value in a JSON text is within more than `most` lists and objects. To be asked before
// a text of others is parsed: each level costs the parser memory and its destructor a call. For a
// text that is not JSON, either answer may come. Takes time in proportion to the text. Pure
// function.
bool IsShallowJson(std::string_view text, size_t most);

}  // namespace resmgr
