// SPDX-License-Identifier: Apache-2.0
#pragma once

// Classes of characters for the readers of HTTP and JSON.
namespace resmgr::docker {

constexpr bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

constexpr char UpperCase(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}
constexpr char LowerCase(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace resmgr::docker
