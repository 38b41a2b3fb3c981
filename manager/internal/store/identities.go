package store

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
)

// Identity is a person as a sign-in provider knows them.
type Identity struct {
	Issuer   string
	Subject  string // for good; the name may change
	Name     string
	Role     string
	Provider string // its name, for people
}

// AdmitIdentity returns the user of an identity, made if there is none, with the
// name and role of now; the last administrator's, too. Name is what people read and no more: where somebody
// else has it, the provider is added. A disabled user stays so.
func (s *Store) AdmitIdentity(ctx context.Context, who Identity) (user User, err error) {
	err = s.update(ctx, func(tx *gorm.DB) error {
		user, err = findUser(tx, "issuer = ? AND subject = ? AND issuer <> ''", who.Issuer, who.Subject)
		isNew := errors.Is(err, ErrNotFound)
		if err != nil && !isNew {
			return err
		}
		before := user
		user.Issuer, user.Subject, user.Role = who.Issuer, who.Subject, who.Role
		if user.Name, err = freeName(tx, who, user.ID); err != nil {
			return err
		}
		if before.isActiveAdmin() && !user.isActiveAdmin() {
			s.warnWithoutOther(tx, before)
		}
		if isNew {
			return insert(tx, &user, user.unique()...)
		}
		return save(tx, before, &user, user.unique()...)
	})
	return user, err
}

// warnWithoutOther tells that the provider has taken the last administrator away.
// Its word holds: nobody stays one by it.
func (s *Store) warnWithoutOther(tx *gorm.DB, user User) {
	admins, err := activeAdmins(tx)
	if err == nil {
		err = requireOther(admins, user)
	}
	if err != nil {
		s.log.Warn("the sign-in provider has taken the role of administrator from somebody", "user", user.Name, "err", err)
	}
}

// freeName is the first of an identity's names that nobody else has.
func freeName(tx *gorm.DB, who Identity, id int64) (string, error) {
	for _, name := range []string{who.Name, who.Name + " (" + who.Provider + ")", who.Name + " (" + who.Provider + ", " + who.Subject + ")"} {
		holder, err := findUser(tx, "name = ?", name)
		if errors.Is(err, ErrNotFound) || err == nil && holder.ID == id {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("somebody else has every name of %q at %s", who.Subject, who.Issuer)
}
