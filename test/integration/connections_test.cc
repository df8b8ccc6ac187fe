// SPDX-License-Identifier: Apache-2.0
// The number of connections in the metrics.
#include <optional>

#include "test/integration/control_fixture.h"

namespace resmgr::test {
namespace {

class ConnectionsTest : public ControlTest {
 protected:
  bool Stand(std::string_view peer, int connections) {
    const std::string line =
        fmt::format("\ncri_resmgr_connections{{peer=\"{}\"}} {}\n", peer, connections);
    return Eventually([&] { return Counts().find(line) != std::string::npos; });
  }
};

TEST_F(ConnectionsTest, OfClientsAndToTheRuntimeForThemAreCountedWhileTheyStand) {
  StartWithMetrics({});
  EXPECT_TRUE(Stand("client", 0)) << Counts();
  EXPECT_TRUE(Stand("runtime", 0)) << "the brain's own does not count: " << Counts();
  std::optional<CriClient> first(Relayed());
  EXPECT_TRUE(first->Call(kVersion, {""}).status.ok());
  EXPECT_TRUE(Stand("client", 1)) << Counts();
  EXPECT_TRUE(Stand("runtime", 1)) << Counts();
  std::optional<CriClient> second(Relayed());
  EXPECT_TRUE(second->Call(kVersion, {""}).status.ok());
  EXPECT_TRUE(Stand("client", 2)) << Counts();
  EXPECT_TRUE(Stand("runtime", 2)) << Counts();
  EXPECT_TRUE(Stand("image", 0)) << "images go to the runtime's socket: " << Counts();
  first.reset();
  EXPECT_TRUE(Stand("client", 1)) << Counts();
  EXPECT_TRUE(Stand("runtime", 1)) << Counts();
  second.reset();
  EXPECT_TRUE(Stand("runtime", 0)) << Counts();
}

}  // namespace
}  // namespace resmgr::test
