package show

import (
	"time"

	"opensource.internal/manager/internal/store"
)

// User is a person who may sign in.
type User struct {
	ID         int64      `json:"id"`
	Name       string     `json:"name" example:"ada"`
	Role       string     `json:"role" enum:"admin,viewer"`
	Issuer     *string    `json:"issuer" doc:"The sign-in provider that knows the person; null for whoever has a password here" example:"https://accounts.example.com"`
	Subject    *string    `json:"subject" doc:"How that provider calls the person, for good"`
	DisabledAt *time.Time `json:"disabledAt" doc:"Since when the person may not sign in; null if they may"`
	CreatedAt  time.Time  `json:"createdAt"`
	UpdatedAt  time.Time  `json:"updatedAt"`
}

// UserOf shows a person.
func UserOf(u store.User) User {
	return User{
		ID: u.ID, Name: u.Name, Role: u.Role, Issuer: Text(u.Issuer), Subject: Text(u.Subject),
		DisabledAt: UTC(u.DisabledAt), CreatedAt: u.CreatedAt.UTC(), UpdatedAt: u.UpdatedAt.UTC(),
	}
}
