// SPDX-License-Identifier: Apache-2.0
#include "pkg/cpufile/cpu_file_text.h"

#include <cstddef>

#include <fmt/format.h>

namespace resmgr {
namespace {

constexpr size_t kLongestName = 255;  // NAME_MAX

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

void AppendEscaped(std::string_view text, std::string& out) {
  for (const char c : text) {
    if (IsPlain(c)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
}

}  // namespace

std::string CpuFileText(const CpuSet& cpus, const CpuSet& exclusive, const NodeSet& mems) {
  return fmt::format("CPUS={}\nEXCLUSIVE_CPUS={}\nSHARED_CPUS={}\nMEMORY_NODES={}\n",
                     cpus.ToString(), exclusive.ToString(), (cpus - exclusive).ToString(),
                     mems.ToString());
}

std::string CpuFileDirectoryPrefix(std::string_view sandbox) {
  std::string prefix;
  AppendEscaped(sandbox, prefix);
  return prefix;
}

std::string CpuFileDirectorySuffix(std::string_view container, uint32_t attempt) {
  std::string suffix = "_";
  AppendEscaped(container, suffix);
  return suffix + fmt::format("_{}", attempt);
}

std::string CpuFileDirectoryName(std::string_view sandbox, std::string_view container,
                                 uint32_t attempt) {
  // Checked before the name is escaped: users who create containers may give them any name.
  if (sandbox.size() > kLongestName || container.size() > kLongestName) return "";
  std::string name = CpuFileDirectoryPrefix(sandbox) + CpuFileDirectorySuffix(container, attempt);
  if (name.size() > kLongestName) name.clear();
  return name;
}

}  // namespace resmgr
