// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace resmgr {

// The wanted value of a file of the host. "DIRECTORY/." stands for the directory itself, as a file
// that reads "there" or nothing (HostFiles).
struct HostValue {
  std::string path;
  std::string text;
  // Not empty: all values of a plan with the same name are written, or none of them.
  std::string together{};
  // If not empty: the value that the file gets back in the end, in place of its present one, unless
  // the journal has one already.
  std::string first{};

  friend bool operator==(const HostValue&, const HostValue&) = default;
};

// Whether a file that reads `a` has the value `b`: masks of CPUs may have other digits, the kernel
// keeps whole pages of memory, rounds bandwidth up, ...
bool SameHostValue(std::string_view path, std::string_view a, std::string_view b);

// The value of the file in a fresh cgroup v2, for files with limits of memory and block I/O that a
// runtime can set when it creates a container; "": not known, or no such file.
std::string_view FreshValue(std::string_view path);

// The value in a form for people: trimmed, with "; " between lines.
std::string HostValueLine(std::string_view text);

}  // namespace resmgr
