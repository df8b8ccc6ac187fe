// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <nlohmann/json.hpp>

#include "webhook/review.h"
#include "webhook/testing/reviews.h"

// For any bytes the answer is a review that allows, with a patch that applies, or a 400.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using nlohmann::json;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const resmgr::webhook::HttpReply reply = resmgr::webhook::ReviewAdmission(text);
  if (reply.status == 400) return 0;
  if (reply.status != 200) std::abort();
  const json answer = json::parse(reply.body, nullptr, false);
  if (answer.is_discarded() || answer["response"]["allowed"] != true) std::abort();
  const json patch = resmgr::webhook::PatchIn(answer);
  if (!patch.is_null()) json::parse(text)["request"]["object"].patch_inplace(patch);
  return 0;
}
