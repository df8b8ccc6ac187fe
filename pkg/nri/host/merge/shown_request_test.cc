// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/shown_request.h"

#include <memory>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/testing/given_container.h"
#include "pkg/nri/testing/messages.h"

namespace resmgr::nri {
namespace {

using testing::ElementsAre;

constexpr std::string_view kAsRequested = "id: 'c' args: '/bin/app' env: 'A=1'";

// Counts how often its message is built.
class CountedContainer final : public PristineContainer {
 public:
  const api::PodSandbox& pod() const override { return given_.pod(); }
  const std::string& id() const override { return given_.id(); }
  api::Container Make() const override {
    ++made;
    return given_.Make();
  }
  api::Container MakeOutline() const override { return given_.MakeOutline(); }
  std::string Question() const override { return given_.Question(); }

  mutable int made = 0;

 private:
  const GivenContainer given_{nri::Make<api::Container>(kAsRequested),
                              nri::Make<api::PodSandbox>("id: 'p'")};
};

class ShownRequestTest : public testing::Test {
 protected:
  api::CreateContainerRequest Asked() {
    api::CreateContainerRequest request;
    EXPECT_TRUE(request.ParseFromString(shown_.Question()));
    return request;
  }

  const std::shared_ptr<CountedContainer> container_ = std::make_shared<CountedContainer>();
  ShownRequest shown_{container_};
};

TEST_F(ShownRequestTest, TheFirstPluginIsAskedWithoutAMessage) {
  EXPECT_THAT(Asked(), Is("pod { id: 'p' } container { " + std::string(kAsRequested) + " }"));
  EXPECT_EQ(container_->made, 0);
}

TEST_F(ShownRequestTest, ChangesAreShownWhenSomebodyLooks) {
  shown_.Add(Make<api::ContainerAdjustment>("env { key: 'B' value: '2' }"));
  shown_.Add(Make<api::ContainerAdjustment>("args: '' args: '/wrap' args: '/bin/app'"));
  EXPECT_EQ(container_->made, 0);
  EXPECT_THAT(Asked(), Is("pod { id: 'p' } container { id: 'c' args: '/wrap' args: '/bin/app' "
                          "env: 'A=1' env: 'B=2' }"));
  // Later changes are included, too, each once.
  shown_.Add(Make<api::ContainerAdjustment>("env { key: '-A' } env { key: 'C' value: '3' }"));
  EXPECT_THAT(shown_.Message().container().env(), ElementsAre("B=2", "C=3"));
  EXPECT_THAT(Asked().container().env(), ElementsAre("B=2", "C=3"));
  EXPECT_EQ(container_->made, 1);
}

TEST_F(ShownRequestTest, LongChangesAreNotKept) {
  api::ContainerAdjustment removals;
  for (int i = 0; i < 10'000; ++i)
    removals.add_env()->set_key("-VARIABLE_" + std::to_string(i));
  shown_.Add(removals);
  EXPECT_EQ(container_->made, 1) << "they are done: there is nothing of them to keep";
  EXPECT_THAT(Asked().container().env(), ElementsAre("A=1"));
}

}  // namespace
}  // namespace resmgr::nri
