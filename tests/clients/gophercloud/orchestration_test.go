// What the acceptance tests of gophercloud itself leave out of the Orchestration API. Logs in by the variables OS_*.
package orchestration

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/acceptance/clients"
	"github.com/gophercloud/gophercloud/openstack/orchestration/v1/apiversions"
	"github.com/gophercloud/gophercloud/openstack/orchestration/v1/resourcetypes"
	"github.com/gophercloud/gophercloud/openstack/orchestration/v1/stackevents"
	"github.com/gophercloud/gophercloud/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/openstack/orchestration/v1/stacks"
	"github.com/gophercloud/gophercloud/openstack/orchestration/v1/stacktemplates"
	th "github.com/gophercloud/gophercloud/testhelper"
)

const patience = 2 * time.Minute

const coin = `
heat_template_version: wallaby
description: A coin
parameters:
  length: {type: number, default: 8}
  word: {type: string, default: heads}
resources:
  coin: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}
outputs:
  word: {description: What is up, value: {get_param: word}}
`

func connect(t *testing.T) *gophercloud.ServiceClient {
	client, err := clients.NewOrchestrationV1Client()
	th.AssertNoErr(t, err)
	return client
}

func text(content string) *stacks.Template {
	return &stacks.Template{TE: stacks.TE{Bin: []byte(content)}}
}

func environment(content string) *stacks.Environment {
	return &stacks.Environment{TE: stacks.TE{Bin: []byte(content)}}
}

func settled(t *testing.T, client *gophercloud.ServiceClient, id string, status string) *stacks.RetrievedStack {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		stack, err := stacks.Find(client, id).Extract()
		th.AssertNoErr(t, err)
		if stack.Status == status {
			return stack
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s; it is %s: %s", status, stack.Status, stack.StatusReason)
		}
	}
}

func create(t *testing.T, client *gophercloud.ServiceClient, name string) *stacks.RetrievedStack {
	made, err := stacks.Create(client, stacks.CreateOpts{
		Name:            name,
		TemplateOpts:    text(coin),
		EnvironmentOpts: environment("parameters: {word: tails}"),
		Parameters:      map[string]interface{}{"length": 12},
		DisableRollback: gophercloud.Enabled,
		Timeout:         10,
		Tags:            []string{"one", "two"},
	}).Extract()
	th.AssertNoErr(t, err)
	return settled(t, client, made.ID, "CREATE_COMPLETE")
}

func remove(t *testing.T, client *gophercloud.ServiceClient, stack *stacks.RetrievedStack) {
	th.AssertNoErr(t, stacks.Delete(client, stack.Name, stack.ID).ExtractErr())
	settled(t, client, stack.ID, "DELETE_COMPLETE")
}

func listed(t *testing.T, client *gophercloud.ServiceClient, options stacks.ListOpts) (names []string) {
	pages, err := stacks.List(client, options).AllPages()
	th.AssertNoErr(t, err)
	found, err := stacks.ExtractStacks(pages)
	th.AssertNoErr(t, err)
	for _, each := range found {
		names = append(names, each.Name)
	}
	return names
}

func TestStackFromCreationToDeletion(t *testing.T) {
	client := connect(t)
	stack := create(t, client, "life")
	th.AssertEquals(t, "12", stack.Parameters["length"])
	th.AssertEquals(t, "tails", stack.Outputs[0]["output_value"])
	th.AssertEquals(t, true, stack.DisableRollback)
	th.AssertEquals(t, 10, stack.Timeout)
	th.AssertEquals(t, "A coin", stack.TemplateDescription)
	th.AssertDeepEquals(t, []string{"one", "two"}, without(stack.Tags, ""))
	th.AssertEquals(t, true, stack.UpdatedTime.IsZero())

	changed := map[string]interface{}{"length": 20}
	th.AssertNoErr(t, stacks.UpdatePatch(client, stack.Name, stack.ID, stacks.UpdateOpts{Parameters: changed}).ExtractErr())
	stack = settled(t, client, stack.ID, "UPDATE_COMPLETE")
	th.AssertEquals(t, "20", stack.Parameters["length"])
	th.AssertEquals(t, "tails", stack.Parameters["word"])

	whole := stacks.UpdateOpts{TemplateOpts: text(coin), Parameters: map[string]interface{}{"length": 4}}
	before := stack.UpdatedTime
	th.AssertNoErr(t, stacks.Update(client, stack.Name, stack.ID, whole).ExtractErr())
	for deadline := time.Now().Add(patience); stack.Parameters["length"] != "4"; time.Sleep(50 * time.Millisecond) {
		stack = settled(t, client, stack.ID, "UPDATE_COMPLETE")
		th.AssertEquals(t, true, time.Now().Before(deadline))
	}
	th.AssertEquals(t, "heads", stack.Parameters["word"])
	th.AssertEquals(t, false, before.After(stack.UpdatedTime))
	remove(t, client, stack)
}

func without(words []string, word string) (others []string) {
	for _, each := range words {
		if each != word {
			others = append(others, each)
		}
	}
	return others
}

func TestRefusalsAreErrorsOfTheLibrary(t *testing.T) {
	client := connect(t)
	_, err := stacks.Find(client, "nothing").Extract()
	if _, absent := err.(gophercloud.ErrDefault404); !absent {
		t.Fatalf("not a 404: %v", err)
	}
	stack := create(t, client, "taken")
	defer remove(t, client, stack)
	_, err = stacks.Create(client, stacks.CreateOpts{Name: "taken", TemplateOpts: text(coin)}).Extract()
	if _, taken := err.(gophercloud.ErrDefault409); !taken {
		t.Fatalf("not a 409: %v", err)
	}
	bad := text("heat_template_version: wallaby\nresources: {one: {type: No::Such::Type}}")
	_, err = stacks.Create(client, stacks.CreateOpts{Name: "bad", TemplateOpts: bad}).Extract()
	if _, wrong := err.(gophercloud.ErrDefault400); !wrong {
		t.Fatalf("not a 400: %v", err)
	}
}

func TestListsAreFilteredAndSorted(t *testing.T) {
	client := connect(t)
	for _, name := range []string{"b", "a", "c"} {
		defer remove(t, client, create(t, client, "list-"+name))
	}
	// stacks.SortName is "name", which Heat does not know and leaves out.
	byName := stacks.ListOpts{SortKey: "stack_name", SortDir: stacks.SortAsc, Tags: "one"}
	th.AssertDeepEquals(t, []string{"list-a", "list-b", "list-c"}, listed(t, client, byName))
	th.AssertDeepEquals(t, []string{"list-b"}, listed(t, client, stacks.ListOpts{Name: "list-b"}))
	th.AssertDeepEquals(t, []string(nil), listed(t, client, stacks.ListOpts{Status: "CREATE_FAILED"}))
	th.AssertDeepEquals(t, []string(nil), listed(t, client, stacks.ListOpts{NotTagsAny: "one,two"}))
	byName.Limit = 1
	th.AssertDeepEquals(t, []string{"list-a"}, listed(t, client, byName))
}

func TestPreviewMakesNothing(t *testing.T) {
	client := connect(t)
	seen, err := stacks.Preview(client, stacks.PreviewOpts{Name: "seen", Timeout: 5, TemplateOpts: text(coin)}).Extract()
	th.AssertNoErr(t, err)
	th.AssertEquals(t, "seen", seen.Name)
	th.AssertEquals(t, 1, len(seen.Resources))
	th.AssertDeepEquals(t, []string(nil), listed(t, client, stacks.ListOpts{Name: "seen"}))
}

func TestAbandonedIsAdopted(t *testing.T) {
	client := connect(t)
	stack := create(t, client, "moved")
	result := stacks.Abandon(client, stack.Name, stack.ID)
	left, err := result.Extract()
	th.AssertNoErr(t, err)
	th.AssertEquals(t, "COMPLETE", left.Status)
	data, err := json.Marshal(result.Body)
	th.AssertNoErr(t, err)
	adopted, err := stacks.Adopt(client, stacks.AdoptOpts{
		Name: "moved", AdoptStackData: string(data), TemplateOpts: text(coin), Timeout: 5,
	}).Extract()
	th.AssertNoErr(t, err)
	remove(t, client, settled(t, client, adopted.ID, "ADOPT_COMPLETE"))
}

func TestResourcesEventsAndTemplate(t *testing.T) {
	client := connect(t)
	stack := create(t, client, "parts")
	defer remove(t, client, stack)

	found, err := stackresources.Find(client, stack.Name).Extract()
	th.AssertNoErr(t, err)
	th.AssertEquals(t, "OS::Heat::RandomString", found[0].Type)
	pages, err := stackresources.List(client, stack.Name, stack.ID, stackresources.ListOpts{Depth: 2}).AllPages()
	th.AssertNoErr(t, err)
	resources, err := stackresources.ExtractResources(pages)
	th.AssertNoErr(t, err)
	th.AssertEquals(t, "CREATE_COMPLETE", resources[0].Status)
	resource, err := stackresources.Get(client, stack.Name, stack.ID, "coin").Extract()
	th.AssertNoErr(t, err)
	th.AssertEquals(t, 12, len(resource.Attributes["value"].(string)))

	of, err := stackevents.Find(client, stack.ID).Extract()
	th.AssertNoErr(t, err)
	th.AssertEquals(t, 4, len(of))
	pages, err = stackevents.List(client, stack.Name, stack.ID, stackevents.ListOpts{
		ResourceNames: []string{"coin"}, SortKey: stackevents.SortCreatedAt, SortDir: stackevents.SortAsc,
	}).AllPages()
	th.AssertNoErr(t, err)
	events, err := stackevents.ExtractEvents(pages)
	th.AssertNoErr(t, err)
	th.AssertEquals(t, "CREATE_IN_PROGRESS", events[0].ResourceStatus)
	pages, err = stackevents.ListResourceEvents(client, stack.Name, stack.ID, "coin", nil).AllPages()
	th.AssertNoErr(t, err)
	events, err = stackevents.ExtractEvents(pages)
	th.AssertNoErr(t, err)
	th.AssertEquals(t, 2, len(events))
	event, err := stackevents.Get(client, stack.Name, stack.ID, "coin", events[1].ID).Extract()
	th.AssertNoErr(t, err)
	th.AssertEquals(t, events[1].Time, event.Time)

	template, err := stacktemplates.Get(client, stack.Name, stack.ID).Extract()
	th.AssertNoErr(t, err)
	th.AssertEquals(t, true, json.Valid(template))
}

func TestResourceTypes(t *testing.T) {
	client := connect(t)
	all, err := resourcetypes.List(client, resourcetypes.ListOpts{WithDescription: true, NameRegex: "OS::Heat::Rand.*"}).Extract()
	th.AssertNoErr(t, err)
	th.AssertEquals(t, 1, len(all))
	th.AssertEquals(t, true, all[0].Description != "")
	named, err := resourcetypes.List(client, nil).Extract()
	th.AssertNoErr(t, err)
	for _, each := range named {
		schema, err := resourcetypes.GetSchema(client, each.ResourceType).Extract()
		if err != nil {
			t.Fatalf("schema of %s: %v", each.ResourceType, err)
		}
		th.AssertEquals(t, each.ResourceType, schema.ResourceType)
	}
	options := resourcetypes.GenerateTemplateOpts{TemplateType: resourcetypes.TemplateTypeHOT}
	template, err := resourcetypes.GenerateTemplate(client, "OS::Heat::RandomString", options).Extract()
	th.AssertNoErr(t, err)
	th.AssertEquals(t, true, template["resources"] != nil)

	pages, err := stackresources.ListTypes(client).AllPages()
	th.AssertNoErr(t, err)
	names, err := stackresources.ExtractResourceTypes(pages)
	th.AssertNoErr(t, err)
	th.AssertEquals(t, len(named), len(names))
	schema, err := stackresources.Schema(client, "OS::Heat::RandomString").Extract()
	th.AssertNoErr(t, err)
	th.AssertEquals(t, "SUPPORTED", schema.SupportStatus["status"])
	_, err = stackresources.Template(client, "OS::Heat::RandomString").Extract()
	th.AssertNoErr(t, err)
}

func TestVersions(t *testing.T) {
	pages, err := apiversions.ListVersions(connect(t)).AllPages()
	th.AssertNoErr(t, err)
	versions, err := apiversions.ExtractAPIVersions(pages)
	th.AssertNoErr(t, err)
	th.AssertEquals(t, "v1.0", versions[0].ID)
	th.AssertEquals(t, "CURRENT", versions[0].Status)
}
