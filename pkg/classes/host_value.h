// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace resmgr {

// A value that a file of the host is to have. "DIRECTORY/." stands for the directory itself, as a
// file that reads "there" or nothing (HostFiles).
struct HostValue {
  std::string path;
  std::string text;
  // Not empty: all values of a plan with the same name are written, or none of them.
  std::string together{};
  // Not empty: what the file is to get back, in place of what it has now, if that is not known yet.
  std::string first{};

  friend bool operator==(const HostValue&, const HostValue&) = default;
};

// Whether a file that reads `a` has the value `b`: masks of CPUs may have other digits, the kernel
// keeps whole pages of memory, rounds bandwidth up, ...
bool SameHostValue(std::string_view path, std::string_view a, std::string_view b);

// For people: without white space around it, and with "; " between lines.
std::string HostValueLine(std::string_view text);

}  // namespace resmgr
