// SPDX-License-Identifier: Apache-2.0
#pragma once

// Classes of ASCII characters, whatever the locale: names, numbers and protocols know no others.
namespace resmgr {

constexpr bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool IsLowerCase(char c) {
  return c >= 'a' && c <= 'z';
}
constexpr bool IsUpperCase(char c) {
  return c >= 'A' && c <= 'Z';
}
constexpr bool IsLetter(char c) {
  return IsLowerCase(c) || IsUpperCase(c);
}
constexpr bool IsLetterOrDigit(char c) {
  return IsLetter(c) || IsDigit(c);
}

// The digit's value; -1: not a hexadecimal digit.
constexpr int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr char UpperCase(char c) {
  return IsLowerCase(c) ? static_cast<char>(c - 'a' + 'A') : c;
}
constexpr char LowerCase(char c) {
  return IsUpperCase(c) ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace resmgr
