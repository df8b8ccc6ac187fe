// SPDX-License-Identifier: Apache-2.0
#include "agent/base64.h"

#include <cstdint>

namespace resmgr::agent {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kWhiteSpace = " \t\r\n";
constexpr int kGroup = 4;  // characters for three bytes
constexpr unsigned kBitsPerCharacter = 6;
constexpr unsigned kBitsPerByte = 8;
constexpr uint32_t kByteMask = 0xFF;
constexpr uint32_t kCharacterMask = 0x3F;

}  // namespace

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  unsigned held = 0;  // bits that are not a whole byte yet
  int characters = 0;
  int padding = 0;
  for (const char c : text) {
    if (kWhiteSpace.find(c) != std::string_view::npos) continue;
    ++characters;
    if (c == '=') {
      ++padding;
      continue;
    }
    const size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos || padding > 0) return std::nullopt;
    bits = (bits << kBitsPerCharacter) | static_cast<uint32_t>(value);
    held += kBitsPerCharacter;
    if (held < kBitsPerByte) continue;
    held -= kBitsPerByte;
    bytes += static_cast<char>((bits >> held) & kByteMask);
  }
  const bool whole = characters % kGroup == 0 && padding <= 2;
  return whole ? std::optional(bytes) : std::nullopt;
}

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  uint32_t bits = 0;
  unsigned held = 0;
  for (const char c : bytes) {
    bits = (bits << kBitsPerByte) | static_cast<unsigned char>(c);
    held += kBitsPerByte;
    while (held >= kBitsPerCharacter) {
      held -= kBitsPerCharacter;
      text += kAlphabet[(bits >> held) & kCharacterMask];
    }
  }
  if (held > 0) text += kAlphabet[(bits << (kBitsPerCharacter - held)) & kCharacterMask];
  while (text.size() % kGroup != 0)
    text += '=';
  return text;
}

}  // namespace resmgr::agent
