// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/pod_fingerprint.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>
#include <xxhash.h>

namespace resmgr {
namespace {

uint64_t FingerprintHash(std::string_view text, uint64_t seed) {
  return XXH64(text.data(), text.size(), seed);
}

void AppendLittleEndian(std::string& bytes, uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8)
    bytes.push_back(static_cast<char>((number >> shift) & 0xff));
}

}  // namespace

std::string PodFingerprint(const std::vector<PodName>& pods) {
  std::vector<uint64_t> hashes;
  hashes.reserve(pods.size());
  for (const PodName& pod : pods)
    hashes.push_back(FingerprintHash(pod.name, FingerprintHash(pod.namespace_name, 0)));
  std::ranges::sort(hashes);
  std::string bytes;
  bytes.reserve(hashes.size() * sizeof(uint64_t));
  for (const uint64_t hash : hashes)
    AppendLittleEndian(bytes, hash);
  return fmt::format("pfp0v001{:016x}", FingerprintHash(bytes, 0));
}

}  // namespace resmgr
