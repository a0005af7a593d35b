// Package contract holds the committed documents against the standards that they name.
package contract_test

import (
	"os"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/stretchr/testify/require"
)

// TestTheDocumentIsOpenAPI: docs/openapi.json is a valid OpenAPI 3.1 document, and tools can build a model of it.
func TestTheDocumentIsOpenAPI(t *testing.T) {
	text, err := os.ReadFile("../../docs/openapi.json")
	require.NoError(t, err)
	doc, err := libopenapi.NewDocument(text)
	require.NoError(t, err)
	require.Equal(t, "3.1.0", doc.GetVersion())
	model, err := doc.BuildV3Model()
	require.NoError(t, err)
	require.Greater(t, model.Model.Paths.PathItems.Len(), 20)
	v, errs := validator.NewValidator(doc)
	require.Empty(t, errs)
	ok, problems := v.ValidateDocument()
	for _, p := range problems {
		t.Errorf("%s: %s %v", p.Message, p.Reason, p.SchemaValidationErrors)
	}
	require.True(t, ok)
}
