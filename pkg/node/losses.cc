// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/losses.h"

#include <algorithm>
#include <iterator>

#include "pkg/base/parse.h"
#include "pkg/resmgr/log_observer.h"

namespace resmgr {
namespace {

// Limit of named containers: the text becomes an annotation of the node and a log line.
constexpr size_t kNamed = 5;
constexpr size_t kLongestPlace = 128;

}  // namespace

std::string DescribeLosses(const std::vector<ResourceManager::Move>& moves) {
  const std::vector<ResourceManager::Move> losses = LossesAmong(moves);
  std::string text;
  for (size_t i = 0; i < std::min(losses.size(), kNamed); ++i) {
    const ResourceManager::Move& move = losses[i];
    text += fmt::format("{}{} ({} -> {})", i == 0 ? "" : ", ", Printable(move.container),
                        Printable(Describe(Place::Of(move.from)), kLongestPlace),
                        Printable(Describe(Place::Of(move.to)), kLongestPlace));
  }
  if (losses.size() > kNamed) text += fmt::format(" and {} more", losses.size() - kNamed);
  return text;
}

std::vector<ResourceManager::Move> LossesAmong(const std::vector<ResourceManager::Move>& moves) {
  std::vector<ResourceManager::Move> losses;
  std::copy_if(moves.begin(), moves.end(), std::back_inserter(losses),
               [](const ResourceManager::Move& move) { return move.LosesExclusiveCpus(); });
  return losses;
}

}  // namespace resmgr
