// SPDX-License-Identifier: Apache-2.0
// Any text as the value of -dump: rules or an error, and a lookup that ends.
#include <cstddef>
#include <cstdint>
#include <string>

#include "pkg/dump/rules.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string spec(data, data + size);
  const auto rules = resmgr::dump::Rules::Parse({spec});
  if (rules.ok()) {
    for (const char* method : {"", "Version", "CreateContainer", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"})
      rules->Lookup(method);
  }
  return 0;
}
